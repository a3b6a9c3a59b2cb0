//! op: expert_down
//! reference: expert_down
// linear_workgroup for experts, in any format of weights: COLUMNS columns a workgroup, four at most, whose threads split K of
// all the row's experts, weighed. What is summed: expert_down_thread.wgsl.
// Grid (ceil(N / COLUMNS), T). One barrier, then a thread a column adds what all left behind.
// Memory: as expert_down_thread.
override K: u32;
override N: u32;
override EACH: u32;
override EXPERT0: u32 = 0u;
override EXPERTS: u32;
override ADD: u32 = 0u; // 1: to what is in out
override WEIGHTS: u32 = 0u; // how they lie: weight_formats.wgsl
override THREADS: u32 = 64u;
override COLUMNS: u32 = 4u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> routes: array<u32>;
@group(0) @binding(3) var<storage, read> weight: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> partials: array<vec4<f32>, THREADS>; // of a thread, its sums for the four columns

//! include: four_weights
//! include: expert_rows

fn word(is_second: bool, at: u32) -> u32 {
    return weight[4u * expert_start() + at];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.y;
    if (row >= state[1]) {
        return;
    }
    let first = group.x * COLUMNS;
    var whole = vec4(0.0);
    for (var slot = 0u; slot < EACH; slot++) {
        if (!take_expert(row, slot)) {
            continue;
        }
        let share = bitcast<f32>(routes[row * 2u * EACH + EACH + slot]);
        for (var i = thread; i < K / 4u; i += THREADS) {
            let part = share * x[(row * EACH + slot) * (K / 4u) + i];
            for (var c = 0u; c < min(COLUMNS, 4u); c++) {
                whole[c] += dot(four_of_row(false, min(first + c, N - 1u), i), part);
            }
        }
    }
    partials[thread] = whole;
    workgroupBarrier();
    for (var c = thread; c < min(COLUMNS, 4u) && first + c < N; c += THREADS) {
        var sum = 0.0;
        for (var i = 0u; i < THREADS; i++) {
            sum += partials[i][c];
        }
        let to = row * N + first + c;
        out[to] = sum + select(0.0, out[to], ADD == 1u);
    }
}
