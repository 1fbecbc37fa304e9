"""Tables of jobs and attempts, made of the archived events: what people ask of a job queue needs no joins then."""
