module starforge/bench/loadgen

go 1.22
