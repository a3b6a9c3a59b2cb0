//! op: attention
//! reference: attention_tiled
//! requires: subgroups
// attention_tiled with lanes that share what they load instead of workgroup memory: four of them have a row of queries
// each, or the weights of four rows, and all lanes take them from there. For CPU adapters, where a load costs every lane
// on its own and a broadcast is one instruction: eleven times attention_streaming's rate on lavapipe.
// Grid (KV_HEADS * blocks of 16 heads, tiles of tokens), memory: as attention_tiled.
override HEADS: u32;
override KV_HEADS: u32;
override DH: u32;
override SCALE: f32;
override WINDOW: u32;
override SOFTCAP: f32 = 0.0; // of scores, before the softmax
override CACHE: u32 = 0u; // how keys and values lie: cache_formats.wgsl
override THREADS: u32 = 8u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> v: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;

//! include: key_values
//! include: attention_by_tile
//! include: rows_by_subgroup

fn score_tile(tile: Tile, first: u32, end: u32, thread: u32, lane: u32) -> array<mat4x4<f32>, 4> {
    let row = lane % 4u;
    let from_0 = place_of(tile, row);
    let from_1 = place_of(tile, row + 4u);
    let from_2 = place_of(tile, row + 8u);
    let from_3 = place_of(tile, row + 12u);
    let position = min(first + thread + THREADS * vec4(0u, 1u, 2u, 3u), vec4(end - 1u));
    let at = (position * KV_HEADS + tile.kv_head) * (DH / 4u);
    var of_0 = mat4x4<f32>(); // of four rows, the products with four keys
    var of_1 = mat4x4<f32>();
    var of_2 = mat4x4<f32>();
    var of_3 = mat4x4<f32>();
    for (var i = 0u; i < DH / 4u; i++) {
        let keys = transpose(mat4x4(key_at(at.x + i), key_at(at.y + i), key_at(at.z + i), key_at(at.w + i)));
        of_0 += keys * shared_rows(q[from_0 + i]);
        of_1 += keys * shared_rows(q[from_1 + i]);
        of_2 += keys * shared_rows(q[from_2 + i]);
        of_3 += keys * shared_rows(q[from_3 + i]);
    }
    return array(of_0, of_1, of_2, of_3);
}

fn weights_of_position(i: u32, lane: u32) -> mat4x4<f32> {
    return shared_rows(weights[4u * i + lane % 4u]);
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    attend(group, thread, lane);
}
