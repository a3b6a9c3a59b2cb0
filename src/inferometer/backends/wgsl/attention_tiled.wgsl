//! op: attention
//! reference: attention_tiled
// Attention of many rows by tiles: 16 queries (tokens by the heads of a kv head) against 4 * THREADS positions at a time.
// Keys of a tile, four vectors of each at once, and queries lie in workgroup memory, from where every thread takes the
// queries; values are read once too, each column of four dims by one thread.
// Grid (KV_HEADS * ceil(heads of a kv head / 16), ceil(T / tokens of a tile)): a tile has 16 / heads tokens, one at least.
// Memory: 4 * DH bytes (float32: 8 * DH) of K and V a position, tile and kv head; workgroup memory 332 bytes a thread and
// 1 KiB: THREADS is 32 at most with WebGPU's default of 16 KiB.
// Positions that no row sees are never loaded. Largest and sum begin at finite numbers, as WGSL has no infinity: a score
// of -inf weighs nothing, and a row in which all are gives zeros.
override HEADS: u32;
override KV_HEADS: u32;
override DH: u32;
override SCALE: f32;
override WINDOW: u32;
override SOFTCAP: f32 = 0.0; // of scores, before the softmax
override CACHE: u32 = 0u; // how keys and values lie: cache_formats.wgsl
override THREADS: u32 = 32u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> v: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;

//! include: key_values

const STEP = 4u; // vectors of a key in workgroup memory at once

var<workgroup> queries: array<mat4x4<f32>, 4u * STEP>; // of a step, then four rows

//! include: attention_by_tile

fn score_tile(tile: Tile, first: u32, end: u32, thread: u32, lane: u32) -> array<mat4x4<f32>, 4> {
    var of_0 = mat4x4<f32>(); // of four rows, the products with the thread's four keys
    var of_1 = mat4x4<f32>();
    var of_2 = mat4x4<f32>();
    var of_3 = mat4x4<f32>();
    for (var start = 0u; start < DH / 4u; start += STEP) {
        workgroupBarrier(); // the last step is read
        for (var s = thread; s < 16u * THREADS; s += THREADS) {
            let position = min(first + s / STEP, end - 1u);
            let column = min(start + s % STEP, DH / 4u - 1u);
            weights[s] = key_at((position * KV_HEADS + tile.kv_head) * (DH / 4u) + column); // not in use before the scores are
        }
        for (var s = thread; s < 4u * STEP; s += THREADS) {
            let at = min(start + s / 4u, DH / 4u - 1u);
            let row = s % 4u * 4u;
            queries[s] = mat4x4(
                q[place_of(tile, row) + at],
                q[place_of(tile, row + 1u) + at],
                q[place_of(tile, row + 2u) + at],
                q[place_of(tile, row + 3u) + at],
            );
        }
        workgroupBarrier();
        for (var i = 0u; i < min(STEP, DH / 4u - start); i++) {
            let own = STEP * thread + i;
            let keys = transpose(mat4x4(
                weights[own],
                weights[own + STEP * THREADS],
                weights[own + 2u * STEP * THREADS],
                weights[own + 3u * STEP * THREADS],
            ));
            of_0 += keys * queries[4u * i];
            of_1 += keys * queries[4u * i + 1u];
            of_2 += keys * queries[4u * i + 2u];
            of_3 += keys * queries[4u * i + 3u];
        }
    }
    return array(of_0, of_1, of_2, of_3);
}

fn weights_of_position(i: u32, lane: u32) -> mat4x4<f32> {
    return mat4x4(weights[4u * i], weights[4u * i + 1u], weights[4u * i + 2u], weights[4u * i + 3u]);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    attend(group, thread, 0u);
}
