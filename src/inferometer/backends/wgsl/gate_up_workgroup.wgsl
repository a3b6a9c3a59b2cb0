//! op: gate_up
//! reference: gate_up
// out = act(x · gate) * (x · up) of one row; ACTIVATION 0: silu, 1: gelu (tanh). Two products in one launch, and x read
// once for both. For GPUs: how threads share the work, and why: linear_workgroup.wgsl.
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
@group(0) @binding(2) var<storage, read> gate: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> up: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> gate_sums: array<vec4<f32>, THREADS>; // of a thread, its sums for the block's four columns
var<workgroup> up_sums: array<vec4<f32>, THREADS>;

//! include: product

fn gate_product(at: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return product(gate[at], low, high);
}

fn up_product(at: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return product(up[at], low, high);
}

//! include: gate_up_by_workgroup
