// A word of eight weights as f16, times eight numbers.
fn product(packed: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return dot(vec4(unpack2x16float(packed.x), unpack2x16float(packed.y)), low)
        + dot(vec4(unpack2x16float(packed.z), unpack2x16float(packed.w)), high);
}
