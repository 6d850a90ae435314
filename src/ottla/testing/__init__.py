"""What tests are made of, ours and our users': disks that crash and clocks that stand still."""
