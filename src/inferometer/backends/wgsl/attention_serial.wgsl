//! op: attention
//! reference: attention
// Attention one position after another: the form to compare with, not to run. Every position costs a dot product over
// all threads and two barriers, one until the parts of the sum are there and one until all have read them; then each
// thread fades its columns and adds the position's value. Interface and results are those of `attention_streaming`.
// Grid (HEADS, T): a workgroup a query head and row. A group's K and V are read once for each of its heads.
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

var<workgroup> products: array<f32, THREADS>;

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
    let own_columns = (columns + THREADS - 1u) / THREADS;
    let base = (row * HEADS + head) * columns;
    var largest = LOWEST;
    var total = 0.0;
    var query = array<vec4<f32>, MOST_COLUMNS>();
    var sums = array<vec4<f32>, MOST_COLUMNS>();
    for (var own = 0u; own < own_columns; own++) {
        let column = thread + own * THREADS;
        if (column < columns) {
            query[own] = q[base + column] * SCALE;
        }
    }
    for (var position = begin; position < end; position++) {
        let at = (position * KV_HEADS + head / (HEADS / KV_HEADS)) * columns;
        var product = 0.0;
        for (var own = 0u; own < own_columns; own++) {
            product += dot(query[own], key_at(at + min(thread + own * THREADS, columns - 1u)));
        }
        products[thread] = product;
        workgroupBarrier();
        var score = 0.0;
        for (var i = 0u; i < THREADS; i++) {
            score += products[i];
        }
        workgroupBarrier();
        score = max(capped(score), MASKED);
        let now = max(largest, score);
        let fade = exp(largest - now);
        let weight = exp(score - now);
        largest = now;
        total = total * fade + weight;
        for (var own = 0u; own < own_columns; own++) {
            let column = min(thread + own * THREADS, columns - 1u);
            sums[own] = sums[own] * fade + weight * value_at(at + column);
        }
    }
    for (var own = 0u; own < own_columns; own++) {
        let column = thread + own * THREADS;
        if (column < columns) {
            out[base + column] = sums[own] / max(total, LEAST);
        }
    }
}
