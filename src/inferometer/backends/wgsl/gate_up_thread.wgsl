//! op: gate_up
//! reference: gate_up
// out = act(x · gate) * (x · up) of one row; ACTIVATION 0: silu, 1: gelu (tanh). Two products in one launch, and x read
// once for both. COLUMNS columns a thread, four at a time, each of gate and up: why: linear_thread.wgsl.
// Grid (ceil(N / (THREADS * COLUMNS))), also over y: the workgroup's number is y * (width of the grid) + x.
// Memory: 2 * N * K weights and K f32 read, N f32 written; K is a multiple of 8, of 32 where weights aren't f16.
override K: u32;
override N: u32;
override OUT0: u32 = 0u;
override STRIDE: u32;
override ACTIVATION: u32;
override WEIGHTS: u32 = 0u; // how they lie: weight_formats.wgsl
override THREADS: u32 = 64u;
override COLUMNS: u32 = 1u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

//! include: gate_up_products
//! include: block_products
//! include: activate

fn words(is_second: bool, at: u32) -> vec4<u32> {
    if (is_second) {
        return up[at];
    }
    return gate[at];
}

fn word(is_second: bool, at: u32, component: u32) -> u32 {
    if (is_second) {
        return up[at][component];
    }
    return gate[at][component];
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (state[1] == 0u) {
        return;
    }
    let eights = K / 8u;
    let first = (group.y * groups.x + group.x) * THREADS * COLUMNS + thread;
    for (var block = 0u; block < COLUMNS; block += 4u) {
        let column = first + (block + vec4(0u, 1u, 2u, 3u)) * THREADS;
        let at = min(column, vec4(N - 1u)) * eights;
        var of_gate = vec4(0.0);
        var of_up = vec4(0.0);
        for (var start = 0u; WEIGHTS != F16 && start < K / 32u; start += blocks_of_a_scale()) {
            let gate_256 = super_words_at(false, column, start);
            let up_256 = super_words_at(true, column, start);
            for (var b = start; b < start + blocks_of_a_scale(); b++) {
                let inputs = read_inputs(8u * b);
                of_gate += block_products(false, column, b, gate_256, inputs);
                of_up += block_products(true, column, b, up_256, inputs);
            }
        }
        for (var i = 0u; WEIGHTS == F16 && i < eights; i += 2u) {
            let low = x[2u * i];
            let high = x[2u * i + 1u];
            of_gate += gate_products(at + i, low, high);
            of_up += up_products(at + i, low, high);
            if (K % 16u == 0u || i + 1u < eights) {
                let next_low = x[2u * i + 2u];
                let next_high = x[2u * i + 3u];
                of_gate += gate_products(at + i + 1u, next_low, next_high);
                of_up += up_products(at + i + 1u, next_low, next_high);
            }
        }
        for (var c = 0u; c < min(COLUMNS, 4u); c++) {
            if (column[c] < N) {
                out[OUT0 + column[c]] = activate(of_gate[c]) * of_up[c];
            }
        }
    }
}
