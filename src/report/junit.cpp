#include "report/junit.hpp"

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

namespace collcast {

namespace {

long failures(const JunitSuite& suite) {
  return std::count_if(suite.cases.begin(), suite.cases.end(), [](const JunitCase& c) { return !c.failure.empty(); });
}

long skipped(const JunitSuite& suite) {
  return std::count_if(suite.cases.begin(), suite.cases.end(), [](const JunitCase& c) { return !c.skipped.empty(); });
}

void append_counts(pugi::xml_node node, std::size_t tests, long failed, long left_out) {
  node.append_attribute("tests") = static_cast<unsigned long long>(tests);
  node.append_attribute("failures") = static_cast<long long>(failed);
  node.append_attribute("errors") = 0;
  if (left_out > 0) node.append_attribute("skipped") = static_cast<long long>(left_out);
}

void append_case(pugi::xml_node suite, const std::string& suite_name, const JunitCase& one) {
  pugi::xml_node node = suite.append_child("testcase");
  node.append_attribute("classname") = suite_name.c_str();
  node.append_attribute("name") = one.name.c_str();
  if (!one.failure.empty()) {
    pugi::xml_node failure = node.append_child("failure");
    failure.append_attribute("message") = one.failure.c_str();
    failure.text() = one.details.c_str();
  } else if (!one.skipped.empty()) {
    node.append_child("skipped").append_attribute("message") = one.skipped.c_str();
  } else if (!one.details.empty()) {
    node.append_child("system-out").text() = one.details.c_str();
  }
}

}  // namespace

std::string junit_text(const std::string& name, const std::vector<JunitSuite>& suites) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  declaration.append_attribute("version") = "1.0";
  declaration.append_attribute("encoding") = "UTF-8";
  pugi::xml_node root = document.append_child("testsuites");
  root.append_attribute("name") = name.c_str();
  std::size_t tests = 0;
  long failed = 0, left_out = 0;
  for (const JunitSuite& suite : suites) {
    tests += suite.cases.size();
    failed += failures(suite);
    left_out += skipped(suite);
  }
  append_counts(root, tests, failed, left_out);
  for (const JunitSuite& suite : suites) {
    pugi::xml_node node = root.append_child("testsuite");
    node.append_attribute("name") = suite.name.c_str();
    append_counts(node, suite.cases.size(), failures(suite), skipped(suite));
    for (const JunitCase& one : suite.cases) append_case(node, suite.name, one);
  }
  std::ostringstream out;
  document.save(out, "  ");
  return out.str();
}

}  // namespace collcast
