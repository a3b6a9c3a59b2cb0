//! op: linear
//! reference: linear
//! requires: subgroups
// linear_workgroup, with subgroupAdd in place of most of the reduction; any size of subgroup, the device's choice.
// Subgroups are taken to number threads in order, as they do where a workgroup has one dimension.
// Grid (ceil(N / COLUMNS)), also over y: the workgroup's number is y * (width of the grid) + x.
// THREADS is 4 or more: the smallest subgroup that WebGPU knows. Memory: as linear_workgroup.
override K: u32;
override N: u32;
override HAS_BIAS: u32 = 0u;
override OUT0: u32 = 0u;
override STRIDE: u32;
override LAST_ROW: u32 = 0u;
override ADD: u32 = 0u; // 1: to what is in out
override THREADS: u32 = 64u;
override COLUMNS: u32 = 4u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> partials: array<vec4<f32>, THREADS / 4u>; // of each subgroup

//! include: product

fn weight_product(at: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return product(weight[at], low, high);
}

//! include: linear_columns

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_size) lanes: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    if (state[1] == 0u) {
        return;
    }
    let words = K / 8u;
    let first = (group.y * groups.x + group.x) * COLUMNS;
    let row = select(0u, 2u * words * (state[1] - 1u), LAST_ROW == 1u);
    for (var block = 0u; block < COLUMNS; block += 4u) {
        let at = min(first + block + vec4(0u, 1u, 2u, 3u), vec4(N - 1u)) * words;
        let sum = subgroupAdd(own_sums(row, at, thread));
        if (lane == 0u) {
            partials[thread / lanes] = sum;
        }
        workgroupBarrier();
        write_columns(first + block, (THREADS + lanes - 1u) / lanes, thread);
        if (COLUMNS > 4u) {
            workgroupBarrier(); // the next block writes where this one reads
        }
    }
}
