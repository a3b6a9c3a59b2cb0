//! op: gate_up
//! reference: matmul_gate_up
// out = act(x · gate) * (x · up) for the rows of the pass; ACTIVATION 0: silu, 1: gelu (tanh). The register tile of
// matmul_tile, a thread's eight columns being four of gate and the same four of up.
// Grid (ceil(N / TILE_N), ceil(T / TILE_M)): a workgroup has TILE_N / 4 x TILE_M / 4 threads, 256 at most; both tiles
// are multiples of 4. Memory at least: 2 * N * K f16 and T * K f32 read, T * N f32 written; K is a multiple of 8.
override K: u32;
override N: u32;
override OUT0: u32 = 0u;
override STRIDE: u32;
override ACTIVATION: u32;
override TILE_M: u32 = 32u;
override TILE_N: u32 = 32u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

//! include: activate

@compute @workgroup_size(TILE_N / 4u, TILE_M / 4u)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
    let words = K / 8u;
    let rows = state[1];
    let row = group.y * TILE_M + thread.y * 4u + vec4(0u, 1u, 2u, 3u);
    let column = group.x * TILE_N + thread.x + (TILE_N / 4u) * vec4(0u, 1u, 2u, 3u);
    if (row.x >= rows || column.x >= N) {
        return;
    }
    let from_x = min(row, vec4(rows - 1u)) * (2u * words);
    let from_weight = min(column, vec4(N - 1u)) * words;
    var of_gate: array<vec4<f32>, 4>; // of each column, for four rows
    var of_up: array<vec4<f32>, 4>;
    for (var i = 0u; i < words; i++) {
        let x0 = x[from_x.x + 2u * i];
        let x1 = x[from_x.y + 2u * i];
        let x2 = x[from_x.z + 2u * i];
        let x3 = x[from_x.w + 2u * i];
        let y0 = x[from_x.x + 2u * i + 1u];
        let y1 = x[from_x.y + 2u * i + 1u];
        let y2 = x[from_x.z + 2u * i + 1u];
        let y3 = x[from_x.w + 2u * i + 1u];
        for (var c = 0u; c < 4u; c++) {
            let packed = gate[from_weight[c] + i];
            let low = vec4(unpack2x16float(packed.x), unpack2x16float(packed.y));
            let high = vec4(unpack2x16float(packed.z), unpack2x16float(packed.w));
            of_gate[c] += vec4(dot(low, x0), dot(low, x1), dot(low, x2), dot(low, x3))
                + vec4(dot(high, y0), dot(high, y1), dot(high, y2), dot(high, y3));
        }
        for (var c = 0u; c < 4u; c++) {
            let packed = up[from_weight[c] + i];
            let low = vec4(unpack2x16float(packed.x), unpack2x16float(packed.y));
            let high = vec4(unpack2x16float(packed.z), unpack2x16float(packed.w));
            of_up[c] += vec4(dot(low, x0), dot(low, x1), dot(low, x2), dot(low, x3))
                + vec4(dot(high, y0), dot(high, y1), dot(high, y2), dot(high, y3));
        }
    }
    for (var c = 0u; c < 4u; c++) {
        for (var r = 0u; r < 4u; r++) {
            if (row[r] < rows && column[c] < N) {
                out[row[r] * STRIDE + OUT0 + column[c]] = activate(of_gate[c][r]) * of_up[c][r];
            }
        }
    }
}
