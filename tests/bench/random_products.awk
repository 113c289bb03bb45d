# Prints a table for expand.awk: awk -v count=N -v seed=S -f random_products.awk. M, N and K of its products are
# log-uniform from 1 to 4096, with at most 2^31 multiplications. The same seed gives the same products everywhere.

function draw() { # the minimal standard generator (Park and Miller 1988), exact in doubles
  state = state * 16807 % 2147483647
  return int(exp(state / 2147483647 * log(4097)))
}

BEGIN {
  state = (seed % 2147483646 + 1) * 48271 % 2147483647
  for (i = 0; i < 8; i++) draw()
  print "# One of the products of random shape that ./dev bench --products draws."
  print "template product"
  print "each type f32"
  print "columns M K N"
  while (done < count) {
    M = draw()
    K = draw()
    N = draw()
    if (M * N * K > 2147483648 || (M, K, N) in seen) continue
    seen[M, K, N] = 1
    print M, K, N
    done++
  }
}
