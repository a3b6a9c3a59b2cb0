"""What rules may ask of a trace, made once for all of them: launches and their idle time, hosts, callers."""
