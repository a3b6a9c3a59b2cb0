// Uses the kernel's SOFTCAP; 0: none. tanh's argument is held where it is finite: WGSL leaves open what it gives beyond.
fn capped(score: f32) -> f32 {
    if (SOFTCAP == 0.0) {
        return score;
    }
    return SOFTCAP * tanh(clamp(score / SOFTCAP, -15.0, 15.0));
}
