"""What a compiler makes of a candidate's Triton kernels for each GPU architecture, on a machine without one."""
