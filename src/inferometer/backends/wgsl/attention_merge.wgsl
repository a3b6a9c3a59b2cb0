//! op: attention_merge
//! reference: attention_merge
// Adds up what `attention_split` left for each chunk of positions: sums fade by the chunk's largest score against the
// largest of all, then the total divides them.
// Grid (HEADS): a workgroup a query head; a thread a dim (or several), through all chunks. No barrier: a chunk's weight
// costs two loads that all threads share and an exp, cheaper for each to do than to wait for.
// Only chunks that hold positions are read; what others hold is old. Chunks of zeros alone give zeros.
override HEADS: u32;
override DH: u32;
override WINDOW: u32;
override CHUNK: u32 = 64u;
override MAX_CHUNKS: u32;
override THREADS: u32 = 64u;

const LOWEST = -1e38; // WGSL has no infinity
const LEAST = 1e-37; // instead of a sum of 0

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> partials: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let head = group.x;
    let end = state[0] + 1u;
    let visible = select(end, min(end, WINDOW), WINDOW != 0u);
    let chunks = (visible + CHUNK - 1u) / CHUNK;
    let row = DH + 2u;
    let base = head * MAX_CHUNKS * row;
    var largest = LOWEST;
    for (var chunk = 0u; chunk < chunks; chunk++) {
        largest = max(largest, partials[base + chunk * row + DH]);
    }
    for (var dim = thread; dim < DH; dim += THREADS) {
        var sum = 0.0;
        var total = 0.0;
        for (var chunk = 0u; chunk < chunks; chunk++) {
            let at = base + chunk * row;
            let weight = exp(partials[at + DH] - largest);
            sum += weight * partials[at + dim];
            total += weight * partials[at + DH + 1u];
        }
        out[head * DH + dim] = sum / max(total, LEAST);
    }
}
