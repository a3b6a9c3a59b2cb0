// The entry point of linear_workgroup, for any type of weights. Uses the kernel's state and LAST_ROW.
//! include: linear_columns

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
    let row = select(0u, 2u * words * (state[1] - 1u), LAST_ROW == 1u);
    for (var block = 0u; block < COLUMNS; block += 4u) {
        let at = min(first + block + vec4(0u, 1u, 2u, 3u), vec4(N - 1u)) * words;
        partials[thread] = own_sums(row, at, thread);
        workgroupBarrier();
        write_columns(first + block, THREADS, thread);
        if (COLUMNS > 4u) {
            workgroupBarrier(); // the next block writes where this one reads
        }
    }
}
