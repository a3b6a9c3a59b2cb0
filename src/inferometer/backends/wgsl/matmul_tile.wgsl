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

fn weights(at: u32) -> Eight {
    let packed = weight[at];
    return Eight(
        vec4(unpack2x16float(packed.x), unpack2x16float(packed.y)),
        vec4(unpack2x16float(packed.z), unpack2x16float(packed.w)),
    );
}

//! include: matmul_by_tile
