//! op: add_rms_norm
//! reference: add_rms_norm
// residual += x, then out = residual * rsqrt(mean(residual²) + EPS) * (OFFSET + weight), row by row.
// Grid (T): a workgroup a row, one barrier; why: rms_norm.wgsl. A thread reads again only what it wrote itself, so the
// residual needs no barrier of its own.
// Memory: 3D f32 read, 2D written a row; D is a multiple of 4.
override D: u32;
override EPS: f32;
override OFFSET: f32 = 0.0;
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read_write> residual: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>;

var<workgroup> partials: array<f32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    if (group.x >= state[1]) {
        return;
    }
    let base = group.x * (D / 4u);
    var squares = 0.0;
    for (var i = thread; i < D / 4u; i += THREADS) {
        let part = residual[base + i] + x[base + i];
        residual[base + i] = part;
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
        out[base + i] = residual[base + i] * scale * (OFFSET + weight[i]);
    }
}
