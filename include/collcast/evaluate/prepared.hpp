// A collective among given groups, looked at once and priced at many sizes.
//
// Who may do it, their neighbours, the ways between them and what they cannot be quicker than do not depend on the
// size; bytes and chunks are put in when a price is asked for. The answers are fastest()'s, to the last bit.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "collcast/evaluate/evaluate.hpp"

namespace collcast {

struct Candidate;

class PreparedCollective {
 public:
  /// Of the request's kind, groups and root; its size is that of what could be objected to, and for the first price.
  static Result<PreparedCollective> make(const Fabric&, const CollectiveRequest&, const CollectivePolicy&);
  /// The same; fails, too, when it is ended.
  static Result<PreparedCollective> make(const Fabric&, const CollectiveRequest&, const CollectivePolicy&,
                                         const GoesOn&);

  /// choose()'s first, at a fraction of the work: what cannot come below the best so far is not looked at.
  /// May be asked by several threads at once.
  Choice fastest(Bytes size) const;
  /// The same; fails when it is ended.
  Result<Choice> fastest(Bytes size, const GoesOn&) const;

  /// The algorithms that there are to choose from, as the catalogue has them; indices for the following.
  std::vector<std::string> algorithms() const;
  /// One of them, with its best chunks.
  Choice price(std::size_t algorithm, Bytes size) const;
  /// The same; fails when it is ended.
  Result<Choice> price(std::size_t algorithm, Bytes size, const GoesOn&) const;
  /// It takes no less than this, whatever the chunks; convex in the size.
  Seconds at_least(std::size_t algorithm, Bytes size) const;

  /// Lanes of routes that they use: 0 and on.
  int lanes() const;
  /// Links that hops cross, all told: some 20 bytes of memory each.
  std::size_t crossings() const;

 private:
  explicit PreparedCollective(std::vector<Candidate>);
  std::shared_ptr<const std::vector<Candidate>> candidates_;
};

}  // namespace collcast
