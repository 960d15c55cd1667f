#include "part.hpp"

namespace collcast::topology {

namespace {

struct ListCables {
  const std::vector<int>& nodes;
  std::vector<std::uint32_t>& out;

  bool operator()(const NoNetwork&) const { return true; }
  bool operator()(const Torus&) const { return nodes.size() == 1; }
  bool operator()(const Star& star) const { return list(star); }
  bool operator()(const LeafSpine& leaves) const { return list(leaves); }

 private:
  template <class Net>
  bool list(const Net& net) const {
    net.each_cable_of(nodes, [this](std::int64_t cable) { out.push_back(static_cast<std::uint32_t>(cable)); });
    return true;
  }
};

}  // namespace

std::shared_ptr<const Part> part_of(const Network& network, std::vector<int> nodes, int of_nodes) {
  Part part{of_nodes, std::move(nodes), {}, {}};
  if (!std::visit(ListCables{part.nodes, part.cables}, network)) return nullptr;
  part.numbers.resize(static_cast<std::size_t>(std::visit([](const auto& net) { return net.cables(); }, network)));
  for (std::size_t c = 0; c < part.cables.size(); ++c) part.numbers[part.cables[c]] = static_cast<std::uint32_t>(c);
  return std::make_shared<const Part>(std::move(part));
}

}  // namespace collcast::topology
