//! op: gate_up
//! reference: gate_up
// out = act(x · gate) * (x · up) of one row; ACTIVATION 0: silu, 1: gelu (tanh). Two products in one launch, and x read
// once for both. For GPUs: how threads share the work, and why: linear_workgroup.wgsl.
// Grid (ceil(N / COLUMNS)), also over y: the workgroup's number is y * (width of the grid) + x.
// Memory: 2 * N * K f16, K f32 read, N f32 written.
override K: u32;
override N: u32;
override OUT0: u32 = 0u;
override STRIDE: u32;
override ACTIVATION: u32;
override THREADS: u32 = 64u;
override COLUMNS: u32 = 4u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> gate_sums: array<vec4<f32>, THREADS>; // of a thread, its sums for the block's four columns
var<workgroup> up_sums: array<vec4<f32>, THREADS>;

fn product(packed: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return dot(vec4(unpack2x16float(packed.x), unpack2x16float(packed.y)), low)
        + dot(vec4(unpack2x16float(packed.z), unpack2x16float(packed.w)), high);
}

// Arguments are held where exp and tanh are finite: WGSL leaves open what they give beyond.
fn activate(x: f32) -> f32 {
    if (ACTIVATION == 0u) {
        return x / (1.0 + exp(min(-x, 80.0)));
    }
    return 0.5 * x * (1.0 + tanh(clamp(0.7978845608 * (x + 0.044715 * x * x * x), -15.0, 15.0)));
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
    let words = K / 8u;
    let first = (group.y * groups.x + group.x) * COLUMNS;
    for (var block = 0u; block < COLUMNS; block += 4u) {
        let at = min(first + block + vec4(0u, 1u, 2u, 3u), vec4(N - 1u)) * words;
        var of_gate = vec4(0.0);
        var of_up = vec4(0.0);
        for (var i = thread; i < words; i += THREADS) {
            let low = x[2u * i];
            let high = x[2u * i + 1u];
            of_gate.x += product(gate[at.x + i], low, high);
            of_up.x += product(up[at.x + i], low, high);
            if (COLUMNS > 1u) {
                of_gate.y += product(gate[at.y + i], low, high);
                of_up.y += product(up[at.y + i], low, high);
            }
            if (COLUMNS > 2u) {
                of_gate.z += product(gate[at.z + i], low, high);
                of_up.z += product(up[at.z + i], low, high);
                of_gate.w += product(gate[at.w + i], low, high);
                of_up.w += product(up[at.w + i], low, high);
            }
        }
        gate_sums[thread] = of_gate;
        up_sums[thread] = of_up;
        workgroupBarrier();
        for (var c = thread; c < min(COLUMNS, 4u); c += THREADS) {
            let column = first + block + c;
            if (column >= N) {
                break;
            }
            var gated = 0.0;
            var value = 0.0;
            for (var i = 0u; i < THREADS; i++) {
                gated += gate_sums[i][c];
                value += up_sums[i][c];
            }
            out[OUT0 + column] = activate(gated) * value;
        }
        if (COLUMNS > 4u) {
            workgroupBarrier(); // the next block writes where this one reads
        }
    }
}
