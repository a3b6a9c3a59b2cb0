//! op: expert_gate_up
//! reference: expert_gate_up
// gate_up_thread for experts: of each row and each of its EACH experts act(x · gate) * (x · up), with weights of that expert,
// whose number `moe_route` left on the device. Only chosen experts are read. A matrix has EXPERTS experts' N rows behind each
// other, from expert EXPERT0 on: of matrices in parts, each part's dispatch leaves the others' experts alone.
// Grid (ceil(N / (THREADS * COLUMNS)), EACH, T). Leaves [T, EACH, N].
// Memory: a row and expert 2 * N * K weights and K f32 read, N f32 written; K is a multiple of 8, of 32 where weights aren't
// f16. Rows of one expert read its weights anew.
override K: u32;
override N: u32;
override EACH: u32;
override EXPERT0: u32 = 0u;
override EXPERTS: u32;
override ACTIVATION: u32;
override WEIGHTS: u32 = 0u; // how they lie: weight_formats.wgsl
override THREADS: u32 = 64u;
override COLUMNS: u32 = 1u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> routes: array<u32>;
@group(0) @binding(3) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;

//! include: gate_up_products
//! include: block_products
//! include: activate
//! include: expert_rows

fn words(is_second: bool, at: u32) -> vec4<u32> {
    if (is_second) {
        return up[expert_start() + at];
    }
    return gate[expert_start() + at];
}

fn word(is_second: bool, at: u32, component: u32) -> u32 {
    return words(is_second, at)[component];
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.z;
    if (row >= state[1] || !take_expert(row, group.y)) {
        return;
    }
    let eights = K / 8u;
    let from_x = row * 2u * eights;
    let first = group.x * THREADS * COLUMNS + thread;
    for (var block = 0u; block < COLUMNS; block += 4u) {
        let column = first + (block + vec4(0u, 1u, 2u, 3u)) * THREADS;
        let at = expert_start() + min(column, vec4(N - 1u)) * eights;
        var of_gate = vec4(0.0);
        var of_up = vec4(0.0);
        for (var b = 0u; WEIGHTS != F16 && b < K / 32u; b++) {
            let inputs = read_inputs(from_x + 8u * b);
            of_gate += block_products(false, column, b, super_words_at(false, column, b), inputs);
            of_up += block_products(true, column, b, super_words_at(true, column, b), inputs);
        }
        for (var i = 0u; WEIGHTS == F16 && i < eights; i++) {
            let low = x[from_x + 2u * i];
            let high = x[from_x + 2u * i + 1u];
            of_gate += gate_products(at + i, low, high);
            of_up += up_products(at + i, low, high);
        }
        for (var c = 0u; c < min(COLUMNS, 4u); c++) {
            if (column[c] < N) {
                out[(row * EACH + group.y) * N + column[c]] = activate(of_gate[c]) * of_up[c];
            }
        }
    }
}
