// The entry point of gate_up_workgroup, for any type of weights. Uses the kernel's state.
//! include: gate_up_columns

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (state[1] == 0u) {
        return;
    }
    let words = K / 8u;
    let first = (group.y * groups.x + group.x) * COLUMNS;
    for (var block = 0u; block < COLUMNS; block += 4u) {
        let at = min(first + block + vec4(0u, 1u, 2u, 3u), vec4(N - 1u)) * words;
        let sums = own_sums(at, thread);
        gate_sums[thread] = sums.gate;
        up_sums[thread] = sums.up;
        workgroupBarrier();
        write_columns(first + block, THREADS, thread);
        if (COLUMNS > 4u) {
            workgroupBarrier(); // the next block writes where this one reads
        }
    }
}
