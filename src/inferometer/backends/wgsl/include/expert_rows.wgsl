// Where the weights of a row's expert begin in a matrix of several experts' N rows. Uses the kernel's K, N, WEIGHTS, EACH,
// EXPERT0, EXPERTS and routes, and row_words of weight_formats.wgsl.
var<private> local_expert: u32;

// Take the expert in a slot of a row; false where it isn't in this part of the matrix.
fn take_expert(row: u32, slot: u32) -> bool {
    let expert = routes[row * 2u * EACH + slot];
    let own = expert - EXPERT0;
    local_expert = own;
    return expert >= EXPERT0 && own < EXPERTS; // not `local_expert`: compilers hold variables to differ between threads
}

// In units of four words.
fn expert_start() -> u32 {
    return local_expert * N * (row_words() / 4u);
}
