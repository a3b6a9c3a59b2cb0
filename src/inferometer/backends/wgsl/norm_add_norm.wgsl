//! op: norm_add_norm
//! reference: norm_add_norm
// residual += norm(x; post), then out = norm(residual; weight): the seam between two halves of a layer with norms in
// front and behind (Gemma 3). norm(x; w) = x * rsqrt(mean(x²) + EPS) * (OFFSET + w), row by row.
// Grid (T): a workgroup a row. Two barriers, one for each sum, and partial sums of their own, so that no third has to
// part them; why no tree: rms_norm.wgsl. A thread reads again only what it wrote itself.
// Memory: 4D f32 read, 2D written a row; D is a multiple of 4.
override D: u32;
override EPS: f32;
override OFFSET: f32 = 0.0;
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read_write> residual: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> post: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> out: array<vec4<f32>>;

var<workgroup> of_x: array<f32, THREADS>;
var<workgroup> of_residual: array<f32, THREADS>;

fn scale_of(squares: f32) -> f32 {
    return inverseSqrt(squares / f32(D) + EPS);
}

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
    of_x[thread] = squares;
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < THREADS; i++) {
        total += of_x[i];
    }
    let scale_x = scale_of(total);
    squares = 0.0;
    for (var i = thread; i < D / 4u; i += THREADS) {
        let part = residual[base + i] + x[base + i] * scale_x * (OFFSET + post[i]);
        residual[base + i] = part;
        squares += dot(part, part);
    }
    of_residual[thread] = squares;
    workgroupBarrier();
    total = 0.0;
    for (var i = 0u; i < THREADS; i++) {
        total += of_residual[i];
    }
    let scale = scale_of(total);
    for (var i = thread; i < D / 4u; i += THREADS) {
        out[base + i] = residual[base + i] * scale * (OFFSET + weight[i]);
    }
}
