// Attention of a tile of queries: a running softmax over tiles of 4 * THREADS positions. Uses the kernel's HEADS, KV_HEADS,
// DH, SCALE, WINDOW, SOFTCAP, THREADS, state, v and out; and two functions that differ in how threads share what they load:
// score_tile, of the tile's 16 rows the products with the thread's four keys, and weights_of_position.
// A row is a query head of a token: all heads of a kv head are in one tile, so that what is cached is read once for them.
// A thread has four positions in the scores, then columns of four dims. Its columns' sums lie in out between tiles of
// positions: registers hold those of one column for 16 rows.

//! include: soft_cap

const LOWEST = -1e38; // WGSL has no infinity
const MASKED = -2e38; // a score of -inf: its exp is 0 even where nothing is larger
const LEAST = 1e-37; // instead of a sum of 0
const ROWS = 16u; // queries of a tile: tokens by heads of a kv head

var<workgroup> weights: array<vec4<f32>, 16u * THREADS>; // four a position: each of four rows
var<workgroup> parts: array<mat4x4<f32>, THREADS>; // of a thread, what it found for 16 rows

struct Tile {
    first_token: u32,
    first_head: u32,
    rows: u32,
    kv_head: u32,
}

// Rows of one token. Of a kv head with more heads than rows a tile has one token, whose last block may have fewer heads.
fn heads_of_tile() -> u32 {
    return min(HEADS / KV_HEADS, ROWS);
}

fn tile_of(group: vec3<u32>) -> Tile {
    let of_group = HEADS / KV_HEADS;
    let heads = heads_of_tile();
    let blocks = (of_group + heads - 1u) / heads;
    let kv_head = group.x / blocks;
    let block = group.x % blocks * heads;
    let first = group.y * (ROWS / heads);
    let tokens = min(ROWS / heads, state[1] - min(first, state[1]));
    return Tile(first, kv_head * of_group + block, tokens * min(heads, of_group - block), kv_head);
}

// Where a row of the tile begins in q and out, in vectors; rows beyond the last are the last.
fn place_of(tile: Tile, row: u32) -> u32 {
    let near = min(row, tile.rows - 1u);
    let token = tile.first_token + near / heads_of_tile();
    return (token * HEADS + tile.first_head + near % heads_of_tile()) * (DH / 4u);
}

fn masked(scores: vec4<f32>, position: vec4<u32>, end: u32) -> vec4<f32> {
    let begin = select(0u, end - min(end, WINDOW), WINDOW != 0u);
    let seen = (position >= vec4(begin)) & (position < vec4(end));
    let scaled = scores * SCALE;
    let own = vec4(capped(scaled.x), capped(scaled.y), capped(scaled.z), capped(scaled.w));
    return select(vec4(MASKED), max(own, vec4(MASKED)), seen);
}

// Four rows of the tile, from `row` on. `first_end`: behind the position of the tile's first token.
fn masked_rows(tile: Tile, row: u32, scores: mat4x4<f32>, position: vec4<u32>, first_end: u32) -> mat4x4<f32> {
    let end = first_end + min(row + vec4(0u, 1u, 2u, 3u), vec4(tile.rows - 1u)) / heads_of_tile();
    return mat4x4(
        masked(scores[0], position, end.x),
        masked(scores[1], position, end.y),
        masked(scores[2], position, end.z),
        masked(scores[3], position, end.w),
    );
}

fn largest_of(scores: mat4x4<f32>) -> vec4<f32> {
    return vec4(
        max(max(scores[0].x, scores[0].y), max(scores[0].z, scores[0].w)),
        max(max(scores[1].x, scores[1].y), max(scores[1].z, scores[1].w)),
        max(max(scores[2].x, scores[2].y), max(scores[2].z, scores[2].w)),
        max(max(scores[3].x, scores[3].y), max(scores[3].z, scores[3].w)),
    );
}

fn weights_of(scores: mat4x4<f32>, largest: vec4<f32>) -> mat4x4<f32> {
    return transpose(mat4x4(
        exp(scores[0] - largest.x),
        exp(scores[1] - largest.y),
        exp(scores[2] - largest.z),
        exp(scores[3] - largest.w),
    ));
}

// Of a column of four dims, what the positions of a tile add to each row's sum, which lies in out: nobody else's thread
// has the column.
fn add_values(
    tile: Tile, column: u32, first: u32, count: u32, fade: mat4x4<f32>, is_first: bool, lane: u32
) {
    let stride = KV_HEADS * (DH / 4u);
    var at = first * stride + tile.kv_head * (DH / 4u) + min(column, DH / 4u - 1u);
    var of_0 = mat4x4<f32>(); // of four rows, the sums of four dims
    var of_1 = mat4x4<f32>();
    var of_2 = mat4x4<f32>();
    var of_3 = mat4x4<f32>();
    for (var i = 0u; i < count; i++) {
        let value = value_at(at);
        let weight = weights_of_position(i, lane);
        of_0 += outer(value, weight[0]);
        of_1 += outer(value, weight[1]);
        of_2 += outer(value, weight[2]);
        of_3 += outer(value, weight[3]);
        at += stride;
    }
    if (column >= DH / 4u) {
        return;
    }
    add_rows(tile, 0u, column, of_0, fade[0], is_first);
    add_rows(tile, 4u, column, of_1, fade[1], is_first);
    add_rows(tile, 8u, column, of_2, fade[2], is_first);
    add_rows(tile, 12u, column, of_3, fade[3], is_first);
}

fn outer(value: vec4<f32>, weight: vec4<f32>) -> mat4x4<f32> {
    return mat4x4(value * weight.x, value * weight.y, value * weight.z, value * weight.w);
}

fn add_rows(tile: Tile, row: u32, column: u32, sums: mat4x4<f32>, fade: vec4<f32>, is_first: bool) {
    for (var r = 0u; r < 4u; r++) {
        if (row + r < tile.rows) {
            let to = place_of(tile, row + r) + column;
            var sum = sums[r];
            if (!is_first) {
                sum += out[to] * fade[r];
            }
            out[to] = sum;
        }
    }
}

fn divide_rows(tile: Tile, row: u32, column: u32, totals: vec4<f32>) {
    for (var r = 0u; r < 4u; r++) {
        if (row + r < tile.rows) {
            out[place_of(tile, row + r) + column] /= max(totals[r], LEAST);
        }
    }
}

fn attend(group: vec3<u32>, thread: u32, lane: u32) {
    let tile = tile_of(group);
    if (tile.rows == 0u) {
        return;
    }
    let columns = DH / 4u;
    let first_end = state[0] + tile.first_token + 1u;
    let end = first_end + (tile.rows - 1u) / heads_of_tile();
    let begin = select(0u, first_end - min(first_end, WINDOW), WINDOW != 0u);
    var largest = mat4x4<f32>();
    for (var i = 0u; i < 4u; i++) {
        largest[i] = vec4(LOWEST);
    }
    var totals = mat4x4<f32>(); // of the thread's own positions
    for (var first = begin; first < end; first += 4u * THREADS) {
        let position = first + thread + THREADS * vec4(0u, 1u, 2u, 3u);
        let products = score_tile(tile, first, end, thread, lane);
        let scores = array(
            masked_rows(tile, 0u, products[0], position, first_end),
            masked_rows(tile, 4u, products[1], position, first_end),
            masked_rows(tile, 8u, products[2], position, first_end),
            masked_rows(tile, 12u, products[3], position, first_end),
        );
        parts[thread] = mat4x4(
            largest_of(scores[0]), largest_of(scores[1]), largest_of(scores[2]), largest_of(scores[3])
        );
        workgroupBarrier();
        var now = largest;
        for (var i = 0u; i < THREADS; i++) {
            let part = parts[i];
            now = mat4x4(max(now[0], part[0]), max(now[1], part[1]), max(now[2], part[2]), max(now[3], part[3]));
        }
        let fade = mat4x4(
            exp(largest[0] - now[0]), exp(largest[1] - now[1]), exp(largest[2] - now[2]), exp(largest[3] - now[3])
        );
        largest = now;
        let of_0 = weights_of(scores[0], now[0]);
        let of_1 = weights_of(scores[1], now[1]);
        let of_2 = weights_of(scores[2], now[2]);
        let of_3 = weights_of(scores[3], now[3]);
        totals = mat4x4(totals[0] * fade[0], totals[1] * fade[1], totals[2] * fade[2], totals[3] * fade[3]);
        for (var j = 0u; j < 4u; j++) {
            let of_position = mat4x4(of_0[j], of_1[j], of_2[j], of_3[j]);
            for (var quad = 0u; quad < 4u; quad++) {
                weights[4u * (thread + j * THREADS) + quad] = of_position[quad];
            }
            totals += of_position;
        }
        workgroupBarrier();
        let count = min(4u * THREADS, end - first);
        for (var c = 0u; c < columns; c += THREADS) {
            add_values(tile, c + thread, first, count, fade, first == begin, lane);
        }
        workgroupBarrier(); // the next tile writes what this one reads
    }
    parts[thread] = totals;
    workgroupBarrier();
    var whole = mat4x4<f32>();
    for (var i = 0u; i < THREADS; i++) {
        whole += parts[i];
    }
    for (var c = thread; c < columns; c += THREADS) {
        divide_rows(tile, 0u, c, whole[0]);
        divide_rows(tile, 4u, c, whole[1]);
        divide_rows(tile, 8u, c, whole[2]);
        divide_rows(tile, 12u, c, whole[3]);
    }
}
