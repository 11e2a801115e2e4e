"""Pictures of pages as SVG, which are drawn from what the browser has laid out."""
