//! op: gate_up
//! reference: gate_up
//! requires: subgroups
// gate_up_workgroup, with subgroupAdd in place of most of the reduction; on subgroups see linear_subgroups.wgsl.
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

var<workgroup> gate_sums: array<vec4<f32>, THREADS / 4u>; // of each subgroup
var<workgroup> up_sums: array<vec4<f32>, THREADS / 4u>;

//! include: product

fn gate_product(at: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return product(gate[at], low, high);
}

fn up_product(at: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return product(up[at], low, high);
}

//! include: gate_up_columns

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
    for (var block = 0u; block < COLUMNS; block += 4u) {
        let at = min(first + block + vec4(0u, 1u, 2u, 3u), vec4(N - 1u)) * words;
        let sums = own_sums(at, thread);
        let of_gate = subgroupAdd(sums.gate);
        let of_up = subgroupAdd(sums.up);
        if (lane == 0u) {
            gate_sums[thread / lanes] = of_gate;
            up_sums[thread / lanes] = of_up;
        }
        workgroupBarrier();
        write_columns(first + block, (THREADS + lanes - 1u) / lanes, thread);
        if (COLUMNS > 4u) {
            workgroupBarrier(); // the next block writes where this one reads
        }
    }
}
