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

fn product(packed: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return dot(vec4(unpack2x16float(packed.x), unpack2x16float(packed.y)), low)
        + dot(vec4(unpack2x16float(packed.z), unpack2x16float(packed.w)), high);
}

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
        var sum = vec4(0.0);
        for (var i = thread; i < words; i += THREADS) {
            let low = x[row + 2u * i];
            let high = x[row + 2u * i + 1u];
            sum.x += product(weight[at.x + i], low, high);
            if (COLUMNS > 1u) {
                sum.y += product(weight[at.y + i], low, high);
            }
            if (COLUMNS > 2u) {
                sum.z += product(weight[at.z + i], low, high);
                sum.w += product(weight[at.w + i], low, high);
            }
        }
        sum = subgroupAdd(sum);
        if (lane == 0u) {
            partials[thread / lanes] = sum;
        }
        workgroupBarrier();
        for (var c = thread; c < min(COLUMNS, 4u); c += THREADS) {
            let column = first + block + c;
            if (column >= N) {
                break;
            }
            var value = 0.0;
            for (var i = 0u; i < (THREADS + lanes - 1u) / lanes; i++) {
                value += partials[i][c];
            }
            if (HAS_BIAS == 1u) {
                value += bias[column];
            }
            if (ADD == 1u) {
                value += out[OUT0 + column];
            }
            out[OUT0 + column] = value;
        }
        if (COLUMNS > 4u) {
            workgroupBarrier(); // the next block writes where this one reads
        }
    }
}
