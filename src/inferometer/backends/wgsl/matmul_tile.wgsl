//! op: matmul
//! reference: linear
// out = x · weight + bias for the rows of the pass. A thread makes 4 rows x 8 columns in registers: 16 loads of a vec4
// for 256 multiply-adds. It reads straight from storage, without workgroup memory and barriers: a tile in workgroup
// memory ran ten times slower on a CPU adapter, and on a GPU threads of a workgroup find each other's rows in cache.
// Grid (ceil(N / TILE_N), ceil(T / TILE_M)): a workgroup has TILE_N / 8 x TILE_M / 4 threads, 256 at most; TILE_M is a
// multiple of 4, TILE_N of 8. Rows and columns beyond the last are read from the last, and not written.
// Memory at least: N * K f16 and T * K f32 read, T * N f32 written; K is a multiple of 8.
override K: u32;
override N: u32;
override HAS_BIAS: u32 = 0u;
override OUT0: u32 = 0u;
override STRIDE: u32;
override TILE_M: u32 = 32u;
override TILE_N: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(TILE_N / 8u, TILE_M / 4u)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
    let words = K / 8u;
    let rows = state[1];
    let row = group.y * TILE_M + thread.y * 4u + vec4(0u, 1u, 2u, 3u);
    let column = group.x * TILE_N + thread.x; // the first of eight, TILE_N / 8 apart
    if (row.x >= rows || column >= N) {
        return;
    }
    let from_x = min(row, vec4(rows - 1u)) * (2u * words);
    var sum: array<vec4<f32>, 8>; // of each column, for four rows
    for (var i = 0u; i < words; i++) {
        let x0 = x[from_x.x + 2u * i];
        let x1 = x[from_x.y + 2u * i];
        let x2 = x[from_x.z + 2u * i];
        let x3 = x[from_x.w + 2u * i];
        let y0 = x[from_x.x + 2u * i + 1u];
        let y1 = x[from_x.y + 2u * i + 1u];
        let y2 = x[from_x.z + 2u * i + 1u];
        let y3 = x[from_x.w + 2u * i + 1u];
        for (var c = 0u; c < 8u; c++) {
            let from_weight = min(column + c * (TILE_N / 8u), N - 1u) * words;
            let packed = weight[from_weight + i];
            let low = vec4(unpack2x16float(packed.x), unpack2x16float(packed.y));
            let high = vec4(unpack2x16float(packed.z), unpack2x16float(packed.w));
            sum[c] += vec4(dot(low, x0), dot(low, x1), dot(low, x2), dot(low, x3))
                + vec4(dot(high, y0), dot(high, y1), dot(high, y2), dot(high, y3));
        }
    }
    for (var c = 0u; c < 8u; c++) {
        let at = column + c * (TILE_N / 8u);
        for (var r = 0u; r < 4u; r++) {
            if (row[r] < rows && at < N) {
                var value = sum[c][r];
                if (HAS_BIAS == 1u) {
                    value += bias[at];
                }
                out[row[r] * STRIDE + OUT0 + at] = value;
            }
        }
    }
}
