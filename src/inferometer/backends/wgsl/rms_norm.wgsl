//! op: rms_norm
//! reference: rms_norm
// out = x * rsqrt(mean(x²) + EPS) * (OFFSET + weight), row by row.
// Grid (T): a workgroup a row. One barrier: each thread leaves its sum of squares, then adds up all THREADS of them
// itself. A tree would take log2(THREADS) barriers, each expensive on CPU adapters and none is free on GPUs.
// The sums are scalars: a write to a component of a vector may write all of it, so threads must not share one.
// Memory: 2D f32 read, D written a row; D is a multiple of 4.
override D: u32;
override EPS: f32;
override OFFSET: f32 = 0.0;
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> out: array<vec4<f32>>;

var<workgroup> partials: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x >= state[1]) {
        return;
    }
    let base = group.x * (D / 4u);
    var squares = 0.0;
    for (var i = thread; i < D / 4u; i += THREADS) {
        let part = x[base + i];
        squares += dot(part, part);
    }
    partials[thread] = squares;
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < THREADS; i++) {
        total += partials[i];
    }
    let scale = inverseSqrt(total / f32(D) + EPS);
    for (var i = thread; i < D / 4u; i += THREADS) {
        out[base + i] = x[base + i] * scale * (OFFSET + weight[i]);
    }
}
