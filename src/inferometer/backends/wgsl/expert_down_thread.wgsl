//! op: expert_down
//! reference: expert_down
// linear_thread for experts: out = the sum over a row's EACH experts of its weight * (x · weight of that expert), x being what
// `expert_gate_up` left for it. Parts of a matrix: expert_gate_up_thread.wgsl; with ADD to what is in out.
// Grid (ceil(N / (THREADS * COLUMNS)), T).
// Memory: a row EACH * N * K weights and EACH * K f32 read, N f32 written; K is a multiple of 8, of 32 where weights aren't
// f16. Rows of one expert read its weights anew.
override K: u32;
override N: u32;
override EACH: u32;
override EXPERT0: u32 = 0u;
override EXPERTS: u32;
override ADD: u32 = 0u; // 1: to what is in out
override WEIGHTS: u32 = 0u; // how they lie: weight_formats.wgsl
override THREADS: u32 = 64u;
override COLUMNS: u32 = 1u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> routes: array<u32>;
@group(0) @binding(3) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

//! include: products
//! include: block_products
//! include: expert_rows

fn words(is_second: bool, at: u32) -> vec4<u32> {
    return weight[expert_start() + at];
}

fn word(is_second: bool, at: u32, component: u32) -> u32 {
    return words(is_second, at)[component];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.y;
    if (row >= state[1]) {
        return;
    }
    let eights = K / 8u;
    let first = group.x * THREADS * COLUMNS + thread;
    for (var block = 0u; block < COLUMNS; block += 4u) {
        let column = first + (block + vec4(0u, 1u, 2u, 3u)) * THREADS;
        var whole = vec4(0.0);
        for (var slot = 0u; slot < EACH; slot++) {
            if (!take_expert(row, slot)) {
                continue;
            }
            let from_x = (row * EACH + slot) * 2u * eights;
            let at = expert_start() + min(column, vec4(N - 1u)) * eights;
            var sums = vec4(0.0);
            for (var b = 0u; WEIGHTS != F16 && b < K / 32u; b++) {
                sums += block_products(false, column, b, super_words_at(false, column, b), read_inputs(from_x + 8u * b));
            }
            for (var i = 0u; WEIGHTS == F16 && i < eights; i++) {
                sums += products(at + i, x[from_x + 2u * i], x[from_x + 2u * i + 1u]);
            }
            whole += sums * bitcast<f32>(routes[row * 2u * EACH + EACH + slot]);
        }
        for (var c = 0u; c < min(COLUMNS, 4u); c++) {
            if (column[c] < N) {
                let to = row * N + column[c];
                out[to] = whole[c] + select(0.0, out[to], ADD == 1u);
            }
        }
    }
}
