//! op: attention
//! reference: attention
// Attention with a running softmax over blocks of THREADS positions: a row sees the positions up to its own, the last
// WINDOW of them (0: all). For prefill, and for decode where few positions are cached.
// Grid (HEADS, T): a workgroup a query head and row, so that K and V are read once for each query head: on long caches
// `attention_split` reads them once a group. A block: each thread scores one position (its dot product in vec4), then
// each takes columns of four dims through all positions of the block. Two barriers a block.
// Memory: 4 * DH bytes (float32: 8 * DH) of K and V a position, row and query head.
// Positions that the row doesn't see are never loaded. Largest and sum begin at finite numbers, as WGSL has no
// infinity: a score of -inf weighs nothing, and a row in which all are gives zeros.
override HEADS: u32;
override KV_HEADS: u32;
override DH: u32;
override SCALE: f32;
override WINDOW: u32;
override SOFTCAP: f32 = 0.0; // of scores, before the softmax
override CACHE: u32 = 0u; // how keys and values lie: cache_formats.wgsl
override THREADS: u32 = 64u;

const LOWEST = -1e38; // WGSL has no infinity
const MASKED = -2e38; // a score of -inf: its exp is 0 even where nothing is larger
const LEAST = 1e-37; // instead of a sum of 0
const MOST_COLUMNS = 64u; // DH is 256 at most

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> v: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;

//! include: key_values

var<workgroup> query: array<vec4<f32>, MOST_COLUMNS>;
var<workgroup> scores: array<f32, THREADS>;
var<workgroup> weights: array<f32, THREADS>;
var<workgroup> parts: array<vec4<f32>, THREADS>;

//! include: soft_cap

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let head = group.x;
    let row = group.y;
    if (row >= state[1]) {
        return;
    }
    let end = state[0] + row + 1u;
    let begin = select(0u, end - min(end, WINDOW), WINDOW != 0u);
    let columns = DH / 4u;
    let stride = KV_HEADS * columns;
    let kv = head / (HEADS / KV_HEADS) * columns;
    // With more threads than columns, `slices` of them share a column and take every slices-th position; with fewer,
    // each has several columns.
    let slices = max(1u, THREADS / columns);
    let slice = thread / columns;
    let column = select(thread, thread % columns, slices > 1u);
    let own_columns = (columns + THREADS - 1u) / THREADS;
    for (var i = thread; i < columns; i += THREADS) {
        query[i] = q[(row * HEADS + head) * columns + i] * SCALE;
    }
    workgroupBarrier();
    var largest = LOWEST;
    var total = 0.0;
    var sums = array<vec4<f32>, MOST_COLUMNS>();
    for (var first = begin; first < end; first += THREADS) {
        let count = min(THREADS, end - first);
        var score = LOWEST;
        if (thread < count) {
            let at = (first + thread) * stride + kv;
            var dots = vec4(0.0);
            for (var i = 0u; i < columns; i++) {
                dots += query[i] * key_at(at + i);
            }
            score = max(capped(dot(dots, vec4(1.0))), MASKED);
        }
        scores[thread] = score;
        workgroupBarrier();
        var now = largest;
        for (var i = 0u; i < count; i++) {
            now = max(now, scores[i]);
        }
        weights[thread] = exp(score - now);
        workgroupBarrier();
        let fade = exp(largest - now);
        largest = now;
        let start = select(0u, slice, slices > 1u);
        total *= fade;
        for (var i = start; i < count; i += slices) {
            total += weights[i];
        }
        for (var own = 0u; own < own_columns; own++) {
            let c = min(column + own * THREADS, columns - 1u);
            var sum = sums[own] * fade;
            for (var i = start; i < count; i += slices) {
                sum += weights[i] * value_at((first + i) * stride + kv + c);
            }
            sums[own] = sum;
        }
    }
    let to = (row * HEADS + head) * columns;
    if (slices == 1u) {
        for (var own = 0u; own < own_columns; own++) {
            if (column + own * THREADS < columns) {
                out[to + column + own * THREADS] = sums[own] / max(total, LEAST);
            }
        }
        return;
    }
    parts[thread] = sums[0];
    workgroupBarrier();
    scores[thread] = total;
    workgroupBarrier();
    if (thread < columns) {
        var sum = vec4(0.0);
        var whole = 0.0;
        for (var i = 0u; i < slices; i++) {
            sum += parts[i * columns + thread];
            whole += scores[i * columns + thread];
        }
        out[to + thread] = sum / max(whole, LEAST);
    }
}
