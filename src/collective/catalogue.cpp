// Which algorithms there are. A new one is its file, its two lines here and its line in CMakeLists.txt.
#include "collective/algorithm.hpp"

namespace collcast {

Algorithm naive();
Algorithm ring();
Algorithm bidirectional_ring();
Algorithm tree();
Algorithm double_tree();
Algorithm recursive_doubling();
Algorithm halving_doubling();
Algorithm hierarchical();
Algorithm scatter_gather();
Algorithm concurrent_tree();
Algorithm direct();

const std::vector<Algorithm>& catalogue() {
  static const std::vector<Algorithm> all{
      ring(),                //
      bidirectional_ring(),  //
      tree(),                //
      double_tree(),         //
      recursive_doubling(),  //
      halving_doubling(),    //
      hierarchical(),        //
      scatter_gather(),      //
      concurrent_tree(),     //
      direct(),              //
      naive(),               // last: of equal closed forms its is the least to be believed where links are shared
  };
  return all;
}

std::span<const AlgorithmInfo> algorithms() {
  static const std::vector<AlgorithmInfo> infos = [] {
    std::vector<AlgorithmInfo> result;
    for (const Algorithm& a : catalogue()) result.push_back(a.info);
    return result;
  }();
  return infos;
}

}  // namespace collcast
