//! op: linear_sum
//! reference: linear_sum
// out = sum over the SPLITS rows of `partials`, plus bias: the end of linear_split.
// Grid (ceil(N / THREADS)): a thread a column, neighbours read side by side.
// Memory: (SPLITS + 1) * N f32 read, N written.
override N: u32;
override SPLITS: u32;
override HAS_BIAS: u32 = 0u;
override OUT0: u32 = 0u;
override STRIDE: u32;
override ADD: u32 = 0u; // 1: to what is in out
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> partials: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let column = group.x * THREADS + thread;
    if (column >= N || state[1] == 0u) {
        return;
    }
    var sum = 0.0;
    for (var split = 0u; split < SPLITS; split++) {
        sum += partials[split * N + column];
    }
    if (HAS_BIAS == 1u) {
        sum += bias[column];
    }
    if (ADD == 1u) {
        sum += out[OUT0 + column];
    }
    out[OUT0 + column] = sum;
}
