//! op: soft_cap
//! reference: soft_cap
// x = SOFTCAP * tanh(x / SOFTCAP), N numbers in place: what Gemma 2 does to its logits.
// Grid (groups): the threads of all workgroups walk through the numbers side by side, so any grid does.
// Memory: 4 * N bytes read, as many written.
override N: u32;
override SOFTCAP: f32;
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;

//! include: soft_cap

@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    if (state[1] == 0u) {
        return;
    }
    for (var i = id.x; i < N; i += groups.x * THREADS) {
        x[i] = capped(x[i]);
    }
}
