// Four vectors for all threads of a subgroup, of which lane l of every four has loaded the l-th: they are taken from the
// first four lanes. WebGPU promises four at least, so that any size of subgroups will do.
fn shared_rows(own: vec4<f32>) -> mat4x4<f32> {
    return mat4x4(
        subgroupBroadcast(own, 0u),
        subgroupBroadcast(own, 1u),
        subgroupBroadcast(own, 2u),
        subgroupBroadcast(own, 3u),
    );
}
