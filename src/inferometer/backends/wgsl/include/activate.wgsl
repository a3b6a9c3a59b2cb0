// Uses the kernel's ACTIVATION; 0: silu, 1: gelu (tanh).
// Arguments are held where exp and tanh are finite: WGSL leaves open what they give beyond.
fn activate(x: f32) -> f32 {
    if (ACTIVATION == 0u) {
        return x / (1.0 + exp(min(-x, 80.0)));
    }
    return 0.5 * x * (1.0 + tanh(clamp(0.7978845608 * (x + 0.044715 * x * x * x), -15.0, 15.0)));
}
