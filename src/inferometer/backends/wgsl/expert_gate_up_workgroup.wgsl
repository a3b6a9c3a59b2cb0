//! op: expert_gate_up
//! reference: expert_gate_up
// gate_up_workgroup for experts, in any format of weights: COLUMNS columns a workgroup, four at most, whose threads split K.
// Which experts, and parts of their matrices: expert_gate_up_thread.wgsl.
// Grid (ceil(N / COLUMNS), EACH, T). Leaves [T, EACH, N]. One barrier, then a thread a column adds what all left behind.
// Memory: as expert_gate_up_thread.
override K: u32;
override N: u32;
override EACH: u32;
override EXPERT0: u32 = 0u;
override EXPERTS: u32;
override ACTIVATION: u32;
override WEIGHTS: u32 = 0u; // how they lie: weight_formats.wgsl
override THREADS: u32 = 64u;
override COLUMNS: u32 = 4u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> routes: array<u32>;
@group(0) @binding(3) var<storage, read> gate: array<u32>;
@group(0) @binding(4) var<storage, read> up: array<u32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

var<workgroup> gate_sums: array<vec4<f32>, THREADS>; // of a thread, its sums for the four columns
var<workgroup> up_sums: array<vec4<f32>, THREADS>;

//! include: four_weights
//! include: activate
//! include: expert_rows

fn word(is_second: bool, at: u32) -> u32 {
    if (is_second) {
        return up[4u * expert_start() + at];
    }
    return gate[4u * expert_start() + at];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.z;
    if (row >= state[1] || !take_expert(row, group.y)) {
        return;
    }
    let first = group.x * COLUMNS;
    var of_gate = vec4(0.0);
    var of_up = vec4(0.0);
    for (var i = thread; i < K / 4u; i += THREADS) {
        let part = x[row * (K / 4u) + i];
        for (var c = 0u; c < min(COLUMNS, 4u); c++) {
            let column = min(first + c, N - 1u);
            of_gate[c] += dot(four_of_row(false, column, i), part);
            of_up[c] += dot(four_of_row(true, column, i), part);
        }
    }
    gate_sums[thread] = of_gate;
    up_sums[thread] = of_up;
    workgroupBarrier();
    for (var c = thread; c < min(COLUMNS, 4u) && first + c < N; c += THREADS) {
        var gated = 0.0;
        var value = 0.0;
        for (var i = 0u; i < THREADS; i++) {
            gated += gate_sums[i][c];
            value += up_sums[i][c];
        }
        out[(row * EACH + group.y) * N + first + c] = activate(gated) * value;
    }
}
