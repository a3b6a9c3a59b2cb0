//! op: linear
//! reference: linear
// out = x · weight + bias of one row: the first, or the last of the pass (LAST_ROW), which becomes row 0 of out.
// For GPUs: COLUMNS columns a workgroup, whose threads split K. Neighbours read neighbouring vec4s of one weight row
// (whole cache lines), four rows at a time (loads in flight), and each vec4 of x serves four columns.
// Grid (ceil(N / COLUMNS)), also over y: the workgroup's number is y * (width of the grid) + x.
// One barrier a block of four columns, then a thread a column adds what all left behind. K is a multiple of 8.
// Memory: N * K f16, K f32 read (x comes from cache for all workgroups but the first), N f32 written.
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

var<workgroup> partials: array<vec4<f32>, THREADS>; // of a thread, its sums for the block's four columns

fn product(packed: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return dot(vec4(unpack2x16float(packed.x), unpack2x16float(packed.y)), low)
        + dot(vec4(unpack2x16float(packed.z), unpack2x16float(packed.w)), high);
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
        partials[thread] = sum;
        workgroupBarrier();
        for (var c = thread; c < min(COLUMNS, 4u); c += THREADS) {
            let column = first + block + c;
            if (column >= N) {
                break;
            }
            var value = 0.0;
            for (var i = 0u; i < THREADS; i++) {
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
