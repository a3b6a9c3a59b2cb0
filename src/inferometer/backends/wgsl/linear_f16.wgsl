//! op: linear
//! reference: linear
//! requires: shader-f16
// linear_workgroup with weights bound as f16: the compiler sees the conversion and need not take words apart. Products
// and sums stay in f32, so the result is the same.
// Grid (ceil(N / COLUMNS)), also over y: the workgroup's number is y * (width of the grid) + x.
// Memory: as linear_workgroup.
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
@group(0) @binding(2) var<storage, read> weight: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> partials: array<vec4<f32>, THREADS>; // of a thread, its sums for the block's four columns

//! include: product_f16

fn weight_product(at: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return product(weight[2u * at], weight[2u * at + 1u], low, high);
}

//! include: linear_by_workgroup
