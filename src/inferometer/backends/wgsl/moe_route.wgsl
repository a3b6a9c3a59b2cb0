//! op: moe_route
//! reference: moe_route
// The experts of each row and their weights: the EACH greatest of EXPERTS scores (of equals the first), and the softmax of
// all scores at these; with RENORMALIZE of these alone. A row has STRIDE scores, of which the first EXPERTS are meant.
// Grid (T): a workgroup a row. A thread counts how many scores are ahead of its own: that is its expert's place, so that
// nothing is sorted and one barrier is enough. NaN is ahead of nothing, and makes every weight NaN.
// Leaves [T, 2 * EACH]: experts, then weights as bits of f32. Memory: 4 * EXPERTS bytes read a row, 8 * EACH written.
override EXPERTS: u32;
override EACH: u32;
override STRIDE: u32;
override RENORMALIZE: u32;
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> scores: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<u32>;

var<workgroup> chosen: array<f32, EACH>;
var<workgroup> experts: array<u32, EACH>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x >= state[1]) {
        return;
    }
    let base = group.x * STRIDE;
    for (var expert = thread; expert < EXPERTS; expert += THREADS) {
        let own = scores[base + expert];
        var ahead = 0u;
        for (var i = 0u; i < EXPERTS; i++) {
            let other = scores[base + i];
            ahead += u32(other > own || (other == own && i < expert));
        }
        if (ahead < EACH) {
            chosen[ahead] = own;
            experts[ahead] = expert;
        }
    }
    workgroupBarrier();
    let top = chosen[0];
    var total = 0.0;
    if (RENORMALIZE != 0u) {
        for (var i = 0u; i < EACH; i++) {
            total += exp(chosen[i] - top);
        }
    } else {
        for (var i = 0u; i < EXPERTS; i++) {
            total += exp(scores[base + i] - top);
        }
    }
    for (var i = thread; i < EACH; i += THREADS) {
        let to = group.x * 2u * EACH + i;
        out[to] = experts[i];
        out[to + EACH] = bitcast<u32>(exp(chosen[i] - top) / total);
    }
}
