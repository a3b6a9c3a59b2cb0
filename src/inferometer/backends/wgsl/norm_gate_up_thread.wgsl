//! op: norm_gate_up
//! reference: norm_gate_up
// out = act(n · gate) * (n · up) with n = rms_norm(x; norm), of one row: how: norm_linear_thread.wgsl, gate_up_thread.wgsl.
// ACTIVATION 0: silu, 1: gelu (tanh). Grid (ceil(N / (THREADS * COLUMNS))), also over y.
// Memory: 2 * N * K f16 and 2K f32 read, N f32 written; K is a multiple of 8.
override K: u32;
override N: u32;
override EPS: f32;
override OFFSET: f32 = 0.0;
override OUT0: u32 = 0u;
override STRIDE: u32;
override ACTIVATION: u32;
override THREADS: u32 = 64u;
override COLUMNS: u32 = 1u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

//! include: gate_up_products
//! include: activate

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (state[1] == 0u) {
        return;
    }
    let words = K / 8u;
    let first = (group.y * groups.x + group.x) * THREADS * COLUMNS + thread;
    for (var block = 0u; block < COLUMNS; block += 4u) {
        let column = first + (block + vec4(0u, 1u, 2u, 3u)) * THREADS;
        let at = min(column, vec4(N - 1u)) * words;
        var of_gate = vec4(0.0);
        var of_up = vec4(0.0);
        var squares = 0.0;
        for (var i = 0u; i < words; i++) {
            let x_low = x[2u * i];
            let x_high = x[2u * i + 1u];
            squares += dot(x_low, x_low) + dot(x_high, x_high);
            let low = x_low * (OFFSET + norm[2u * i]);
            let high = x_high * (OFFSET + norm[2u * i + 1u]);
            of_gate += gate_products(at + i, low, high);
            of_up += up_products(at + i, low, high);
        }
        let scale = inverseSqrt(squares / f32(K) + EPS);
        for (var c = 0u; c < min(COLUMNS, 4u); c++) {
            if (column[c] < N) {
                out[OUT0 + column[c]] = activate(scale * of_gate[c]) * (scale * of_up[c]);
            }
        }
    }
}
