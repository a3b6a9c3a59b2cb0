"""Where a watch's events go while it runs: a webhook, an endpoint for Prometheus."""
