// Eight weights bound as f16, times eight numbers: products and sums stay in f32.
fn product(first: vec4<f16>, second: vec4<f16>, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return dot(vec4<f32>(first), low) + dot(vec4<f32>(second), high);
}
