//! op: gate_up
//! reference: matmul_gate_up
// out = act(x · gate) * (x · up) for the rows of the pass; ACTIVATION 0: silu, 1: gelu (tanh). The tile of
// matmul_workgroup, a thread's eight columns being four of gate and the same four of up.
// Grid (ceil(N / 16), ceil(T / 64)), 64 threads; 6 KiB of workgroup memory.
// Memory at least: 2 * N * K weights and T * K f32 read, T * N f32 written; K is a multiple of 8, of 32 where weights
// aren't f16.
override K: u32;
override N: u32;
override OUT0: u32 = 0u;
override STRIDE: u32;
override WEIGHTS: u32 = 0u; // how they lie: weight_formats.wgsl
override ACTIVATION: u32;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> gate: array<u32>;
@group(0) @binding(3) var<storage, read> up: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

//! include: gate_up_operands
//! include: matmul_by_workgroup
