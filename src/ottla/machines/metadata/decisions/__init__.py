"""What the controller decides, one family of requests a module: each reads the image and changes nothing."""
