"""routing: from interests to the trees that carry them and the demands they leave. After topology, before flow."""
