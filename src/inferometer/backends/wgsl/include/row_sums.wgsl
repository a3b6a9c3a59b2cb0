// Of a thread's eight columns, sums for four rows.
alias Sums = array<vec4<f32>, 8>;
