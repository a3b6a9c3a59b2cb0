//! op: gate_up
//! reference: gate_up
//! requires: shader-f16
// gate_up_workgroup with weights bound as f16; products and sums stay in f32.
// Grid (ceil(N / COLUMNS)), also over y: the workgroup's number is y * (width of the grid) + x.
// Memory: 2 * N * K f16, K f32 read, N f32 written.
override K: u32;
override N: u32;
override OUT0: u32 = 0u;
override STRIDE: u32;
override ACTIVATION: u32;
override THREADS: u32 = 64u;
override COLUMNS: u32 = 4u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> gate: array<vec4<f16>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<f16>>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> gate_sums: array<vec4<f32>, THREADS>; // of a thread, its sums for the block's four columns
var<workgroup> up_sums: array<vec4<f32>, THREADS>;

//! include: product_f16

fn gate_product(at: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return product(gate[2u * at], gate[2u * at + 1u], low, high);
}

fn up_product(at: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return product(up[2u * at], up[2u * at + 1u], low, high);
}

//! include: gate_up_by_workgroup
