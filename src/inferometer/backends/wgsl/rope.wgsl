//! op: rope
//! reference: rope
// Takes the heads of one projection apart: queries and keys pass a norm over the head (HAS_NORMS), then their halves
// are rotated by the angles of their position; keys and values go into the cache there.
// Grid (HEADS + 2 * KV_HEADS, T): a workgroup a head and row; queries, then keys, then values. DH is a multiple of 8.
// Memory: 2 * DH f32 read and DH numbers written a head; values have no angles. The norm costs one barrier: each thread
// adds up all THREADS sums of squares itself. Few threads, as a head is short: DH / 8 of them have work.
override HEADS: u32;
override KV_HEADS: u32;
override DH: u32;
override HAS_NORMS: u32;
override EPS: f32;
override OFFSET: f32;
override CACHE: u32 = 0u; // how keys and values lie: cache_formats.wgsl
override THREADS: u32 = 32u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> angles: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> head_norms: array<f32>;
@group(0) @binding(4) var<storage, read_write> q: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> k: array<vec2<u32>>;
@group(0) @binding(6) var<storage, read_write> v: array<vec2<u32>>;

//! include: cache_formats

const LARGEST_HALF = 65504.0;
const INFINITE = 0x7f800000u; // bits from which on float32 is no finite number

var<workgroup> squares: array<f32, THREADS>;

// What is finite stays finite; infinities and NaN stay what they are.
fn packed(x: vec4<f32>) -> vec2<u32> {
    let is_finite = (bitcast<vec4<u32>>(x) & vec4(0x7fffffffu)) < vec4(INFINITE);
    let kept = select(x, clamp(x, vec4(-LARGEST_HALF), vec4(LARGEST_HALF)), is_finite);
    return vec2(pack2x16float(kept.xy), pack2x16float(kept.zw));
}

// Keys 4 * i to 4 * i + 3.
fn put_key(i: u32, x: vec4<f32>) {
    if (CACHE == CACHE_F32) {
        k[2u * i] = bitcast<vec2<u32>>(x.xy);
        k[2u * i + 1u] = bitcast<vec2<u32>>(x.zw);
    } else {
        k[i] = packed(x);
    }
}

// As put_key, of values.
fn put_value(i: u32, x: vec4<f32>) {
    if (CACHE == CACHE_F32) {
        v[2u * i] = bitcast<vec2<u32>>(x.xy);
        v[2u * i + 1u] = bitcast<vec2<u32>>(x.zw);
    } else {
        v[i] = packed(x);
    }
}

fn norm_weight(first: u32) -> vec4<f32> {
    let w = vec4(head_norms[first], head_norms[first + 1u], head_norms[first + 2u], head_norms[first + 3u]);
    return OFFSET + w;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.y;
    if (row >= state[1]) {
        return;
    }
    let position = state[0] + row;
    let half = DH / 8u; // of a head, in vec4
    let head = group.x;
    let base = (row * (HEADS + 2u * KV_HEADS) + head) * 2u * half;
    if (head >= HEADS + KV_HEADS) {
        let to = (position * KV_HEADS + head - HEADS - KV_HEADS) * 2u * half;
        for (var i = thread; i < 2u * half; i += THREADS) {
            put_value(to + i, qkv[base + i]);
        }
        return;
    }
    var scale = 1.0;
    if (HAS_NORMS != 0u) {
        var own = 0.0;
        for (var i = thread; i < 2u * half; i += THREADS) {
            let part = qkv[base + i];
            own += dot(part, part);
        }
        squares[thread] = own;
        workgroupBarrier();
        var total = 0.0;
        for (var i = 0u; i < THREADS; i++) {
            total += squares[i];
        }
        scale = inverseSqrt(total / f32(DH) + EPS);
    }
    let is_key = head >= HEADS;
    for (var i = thread; i < half; i += THREADS) {
        var first = qkv[base + i] * scale;
        var second = qkv[base + half + i] * scale;
        if (HAS_NORMS != 0u) {
            let norm = select(0u, DH, is_key) + 4u * i;
            first *= norm_weight(norm);
            second *= norm_weight(norm + 4u * half);
        }
        let cosine = angles[position * 2u * half + i];
        let sine = angles[position * 2u * half + half + i];
        let rotated_first = first * cosine - second * sine;
        let rotated_second = second * cosine + first * sine;
        if (is_key) {
            let to = (position * KV_HEADS + head - HEADS) * 2u * half + i;
            put_key(to, rotated_first);
            put_key(to + half, rotated_second);
        } else {
            let to = (row * HEADS + head) * 2u * half + i;
            q[to] = rotated_first;
            q[to + half] = rotated_second;
        }
    }
}
