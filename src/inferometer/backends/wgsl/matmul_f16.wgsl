//! op: matmul
//! reference: linear
//! requires: shader-f16
// matmul_tile with weights bound as f16: the compiler sees the conversion and need not take words apart. Products and
// sums stay in f32, so the result is the same.
// Grid (ceil(N / TILE_N), ceil(T / TILE_M)); tile and memory: as matmul_tile.
override K: u32;
override N: u32;
override HAS_BIAS: u32 = 0u;
override OUT0: u32 = 0u;
override STRIDE: u32;
override TILE_M: u32 = 32u;
override TILE_N: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

fn weights(at: u32) -> Eight {
    return Eight(vec4<f32>(weight[2u * at]), vec4<f32>(weight[2u * at + 1u]));
}

//! include: matmul_by_tile
